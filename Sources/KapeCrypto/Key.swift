/// Key types and key material.
