// Package command is the command line of tenants: to serve, and what is needed
// at the server before anybody can sign in, or when nobody can any more. It
// acts through the services that the API and the console use.
package command
