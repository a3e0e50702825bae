// Package contract is the interface between modules: the names of
// topics and consumer groups, the events on them, and their exact form,
// CloudEvents 1.0 in Kafka's binary mode, with a golden file in
// testdata of every version ever published. It imports no module and
// does no I/O.
package contract
