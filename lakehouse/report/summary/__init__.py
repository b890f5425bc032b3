"""The report in short: the words of page, PDF, terminal, mail and chats."""
