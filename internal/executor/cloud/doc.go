// Package cloud is what the executors of clouds have in common: a request on its way, with its
// patience, and what was sent of it. What differs between providers stays with them: how an
// address moves, and what an error means.
package cloud
