// Package localca is a certificate authority for one machine, so that
// development and tests use real HTTPS. It touches the files of one folder;
// a client with the authority's certificate checks servers as usual.
package localca
