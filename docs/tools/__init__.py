"""What makes pages of the documentation from the code, so that they cannot lag behind it."""
