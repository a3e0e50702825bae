package tenants

// A SignInResult is what a browser gets when a member signs in.
type SignInResult struct {
	Session Session
	Secret  Secret
	Devices []Secret // recognize the browser later, the new one first; stored nowhere
}
