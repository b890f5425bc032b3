"""Reports on clusters whose state is known at every microsecond."""
