// Package errorcodes lists the codes of the API's errors from the
// places in the source that answer with them: status, detail, fix. It
// reads only source files.
package errorcodes
