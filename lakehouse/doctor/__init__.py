"""What a person wants to know of a lake that may be ill: by delta-rs alone, nothing is changed."""
