"""Machine images, and what a Neuron image holds."""
