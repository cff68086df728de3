// Package oci carries out requests on the Core API of Oracle Cloud (version 20160918), with the
// official SDK and the identity of the instance (an instance principal).
//
// It promises: at most one changing call per request, which is sent once and never repeated;
// every change of what there is carries the etag of the very read that it rests on; what is
// reported as done was shown by a read; and a call that was not answered is taken for neither
// done nor undone until a read tells.
//
// OCI knows no epochs (ADR 0008 §5). An address is an object there, and a move keeps its OCID:
// a release that only names the OCID takes the address from whoever has it by then. So a
// release reads the object once more, looks in that read on which VNIC it is, and deletes it
// only if it is as it was read. Whoever moved it in between has changed its etag, and the
// release is refused (case c12). A move does the same.
//
// The creation of an address has no etag. It is refused while anybody has the address, and
// carries an opc-retry-token that is made of the request's ID: within a day OCI takes two
// requests with one token for the same, so that one that was delayed on its way creates
// nothing once another attempt of it was served. The token is no memory: OCI forgets it after
// a day, answers with the object as it is now, wherever it is, and has no token for a move. An
// attempt after one that was not answered therefore reads first, like any other here, and what
// a creation answers is never taken for its outcome. OCI refuses a token (InvalidatedRetryToken)
// when what it created was deleted since; a repair and a new epoch have IDs, and tokens, of
// their own.
//
// What no read shows is taken for not there, for want of an OCID to ask for. What of ours shows
// later than executor.Patience, or than its process has lived, is drift, and repaired as such.
//
// The API has no dry run. A dry run reads what a change would meet, and says that it does not
// know of permissions.
package oci
