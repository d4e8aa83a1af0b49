"""Networks: weights, gains, resting state, modes and stability."""
