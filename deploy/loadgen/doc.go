// Package loadgen sends realistic traffic: posts of entries as package
// entries makes them, only through the public API.
package loadgen
