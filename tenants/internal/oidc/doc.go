// Package oidc signs people in by an identity provider (OpenID
// Connect): by the authorization code flow with PKCE, state
// and nonce. It may call the provider, and stores nothing.
package oidc
