"""The short report as a mail, a message of Slack and a card of Microsoft Teams, and their way."""
