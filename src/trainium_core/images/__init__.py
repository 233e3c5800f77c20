"""Machine images, and the content of Neuron images."""
