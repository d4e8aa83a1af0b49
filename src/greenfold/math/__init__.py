"""Pure functions of arrays: maxima on the sphere, margins, ridge, moments, decisions."""
