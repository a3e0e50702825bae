package people

// Services decide about people and their codes.
type Services struct {
	Members     *Service
	Invitations *Invitations
	Codes       *Codes
	Mailings    *Mailings
}
