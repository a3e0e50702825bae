// Package unsubscribe signs and reads the links by which
// anyone who holds a mail ends its kind without signing in (RFC
// 8058). It touches nothing: other packages act on a link.
package unsubscribe
