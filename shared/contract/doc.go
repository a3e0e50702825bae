// Package contract is what crosses a module's border: the names of topics and consumer groups, the events on them,
// and their exact form on the wire. Every event is a CloudEvent 1.0 in Kafka's binary mode: attributes are headers with
// the prefix "ce_", the data is the record's value. So a consumer filters and accounts without decoding a value.
//
// Names and forms are data that outlive any release. testdata holds a golden file of every version ever published;
// none is ever edited, and all of them decode for ever.
package contract
