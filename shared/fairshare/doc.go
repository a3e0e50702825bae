// Package fairshare limits frequency and amounts: token buckets of
// one number each, and bounded tables of them. It is pure: time
// is an argument, in nanoseconds since 1970.
package fairshare
