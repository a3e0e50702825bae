// Package contract is what crosses a module's border: the names of topics
// and consumer groups, the events on them, and their exact form, CloudEvents
// 1.0 in Kafka's binary mode, of which testdata holds a golden file of every
// version ever published. It imports no module and does no I/O.
package contract
