// Package errorcodes lists the codes of the API's errors from the
// places in the source that answer with them: status, what is said,
// what to do. It reads source files alone.
package errorcodes
