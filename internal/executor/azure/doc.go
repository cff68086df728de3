// Package azure carries out requests on Azure Resource Manager (ARM), with the official SDK's
// pipeline, poller and credentials, and the identity of the host.
//
// It promises: at most one change per request, sent once and never repeated after an answer
// that leaves it open; what is reported as done was shown by a read of the NIC; and a change
// without an answer is taken for neither done nor undone until a read tells.
//
// ARM changes a NIC as a whole. It is read, edited as raw JSON, and put back with If-Match: the
// types of the SDK would drop each field that they do not know, and ARM takes a field that is
// not sent for one that is to go. A put that comes late, of a paused or killed process, finds
// another etag and is refused, so a 412 is no change and our own NIC is read and edited again.
//
// ARM moves no address. It is taken from the NIC that has it, and executor.OutcomeAgain asks the
// gate again before it is assigned here; an attempt that dies between the two is resumed by one
// that finds the address on no NIC. The first step edits another host's NIC (ADR 0008 §5 (c)
// does not hold for it): it names the NIC that was seen to have the address, with the etag that
// it was seen with, and never looks a second time. If that NIC has changed in between, it may
// have lost the address and got it back as the new holder, so the gate has to decide anew.
//
// ARM has no dry run of a put. A dry run reads what it would meet, and says that it does not know
// of permissions.
//
// The activity log shows a request under its correlation ID: the UUID, version 5, of the
// idempotencyKey in the name space of URLs.
package azure
