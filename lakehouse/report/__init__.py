"""What a report says: its facts, its page and its words."""
