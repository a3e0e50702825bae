// Command tenants runs Weir's organizations, projects, API keys,
// service tokens and members. It turns flags and environment
// into commands of tenants/app/command.
package main
