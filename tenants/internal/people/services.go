package people

// Services decide about people, and about what they come in by.
type Services struct {
	Members     *Service
	Invitations *Invitations
	Codes       *Codes
	Mailings    *Mailings
}
