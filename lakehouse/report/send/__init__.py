"""The short report as messages for mail and chats, and their delivery."""
