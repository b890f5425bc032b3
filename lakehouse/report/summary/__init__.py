"""The report in short: what page, PDF, terminal, mail, chats and JSON readers state, in words."""
