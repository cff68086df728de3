// Package aws carries out requests on EC2, with the official SDK and the identity of the host.
//
// It promises: at most one changing call per request, which is sent once and never repeated;
// what is reported as done was shown by DescribeNetworkInterfaces; and a call that was not
// answered is taken for neither done nor undone until a read tells.
//
// EC2 knows no epochs. A release names a NIC and takes from that one alone (ADR 0008 §5 (c)).
// An assignment with Reassign is carried out whoever has the address, and EC2 lets the last
// one that asks have it: so it is asked for without a read before it, right after the gate
// of the agent, unless an earlier attempt may have taken effect.
//
// AssignPrivateIpAddresses and its kin have no DryRun. A dry run of them reads what they would
// meet, and says that it does not know of permissions.
//
// An IPv6 address cannot be reassigned in one call. It is taken from the NIC that has it, by
// name, and executor.OutcomeAgain asks the gate again before it is assigned.
package aws
