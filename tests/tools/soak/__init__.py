"""Random work by several clients, with a model of what must be true: `./dev soak`."""
