// Package manifest reads Kubernetes objects from files, as kubectl reads them and as strictly
// as an API server that is asked for strict validation takes them: fields that a kind does not
// have are refused, defaults are filled in, and schema and rules are those of the
// CustomResourceDefinition, judged by the API server's own packages. A complaint names the
// file, the document in it and the line.
package manifest
