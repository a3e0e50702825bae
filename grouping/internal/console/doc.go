// Package console shows error groups to people: the list of an
// organization, and one group with its samples. It translates what
// the service returns and reads no table.
package console
