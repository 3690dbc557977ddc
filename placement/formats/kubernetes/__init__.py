"""Objects of a Kubernetes cluster: `placement.formats.kubernetes.read` makes a snapshot of them."""
