"""Pure functions of arrays: maxima on the sphere, margins, moments and decisions."""
