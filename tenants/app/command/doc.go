// Package command is the command line of tenants: to serve, and
// for use at the server before anybody can sign in, or when nobody
// can any more. It uses the services of the API and the console.
package command
