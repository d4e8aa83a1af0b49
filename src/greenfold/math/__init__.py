"""Pure functions of arrays: sphere, margins, moments, decisions."""
