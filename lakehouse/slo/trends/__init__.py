"""How an objective went over the last weeks, and how it is likely to go on."""
