"""What readers make of gold: incidents over hours and sources, and events with their causes."""
