// Package profile keeps how a person reaches installations, a file for
// each below the configuration folder. It imports nothing else of deploy.
package profile
