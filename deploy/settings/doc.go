// Package settings lists the settings of programs from the tags
// that their commands are parsed by: variable, flag, default,
// help. It reads no environment.
package settings
