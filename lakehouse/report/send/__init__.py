"""A report on its way to people: by mail and by webhook, of the facts of a report alone."""
