"""What is around the engines: who asks, the cards, the host; and the node as a recording."""
