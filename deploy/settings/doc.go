// Package settings lists the settings of programs from the tags of their
// commands: variable, flag, default, help. It reads no environment.
package settings
