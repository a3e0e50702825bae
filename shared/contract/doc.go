// Package contract is what crosses a module's border: the names of topics and
// consumer groups, the events on them, and their exact form, CloudEvents 1.0 in
// Kafka's binary mode. Attributes are headers, so a consumer filters and
// accounts without decoding a value. Names and forms outlive any release:
// testdata holds a golden file of every version ever published, all of which
// decode for ever. It imports no module and does no I/O.
package contract
