class DeployError(Exception):
    """Something that a host would install cannot be made; one line with what to do."""
