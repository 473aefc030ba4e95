"""The pages in a browser. A package, so that the browser ends with the last of these tests."""
