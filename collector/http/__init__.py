"""What all routes share: problems, who may, parameters, headers, the description of the API."""
