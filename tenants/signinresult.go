package tenants

// An Entry is what a browser gets that lets a member in.
type SignInResult struct {
	Session Session
	Secret  Secret
	Devices []Secret // by which the browser is known again, the new one first; in no other place
}
