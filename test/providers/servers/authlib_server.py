"""A provider of Authlib, as its documentation builds one: PKCE, HTTP Basic, rotating refresh tokens, revocation."""
import os
import time

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Error, grants
from authlib.oauth2.rfc6749.util import list_to_scope, scope_to_list
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask, request

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
SECRET = "authlib-secret_of-a.test"


class Client(ClientMixin):
    def get_client_id(self):
        return "test-client"

    def get_default_redirect_uri(self):
        return os.environ["REDIRECT_URI"]

    def get_allowed_scope(self, scope):
        return list_to_scope([each for each in scope_to_list(scope) if each in ("trade", "account_manage")])

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri == os.environ["REDIRECT_URI"]

    def check_client_secret(self, client_secret):
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method, endpoint):
        return method == "client_secret_basic"

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in ("authorization_code", "refresh_token")


class User:
    def get_user_id(self):
        return "demo"


class Code(dict):
    def get_redirect_uri(self):
        return self["redirect_uri"]

    def get_scope(self):
        return self["scope"]

    def __getattr__(self, name):
        return self[name]


class Token(dict):
    def check_client(self, client):
        return True

    def get_scope(self):
        return self["scope"]

    def get_expires_in(self):
        return self["expires_in"]

    def is_expired(self):
        return False

    def is_revoked(self):
        return self.get("revoked", False)


client, codes, tokens = Client(), {}, []


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]

    def save_authorization_code(self, code, request):
        codes[code] = Code(
            redirect_uri=request.redirect_uri,
            scope=request.scope,
            code_challenge=request.data.get("code_challenge"),
            code_challenge_method=request.data.get("code_challenge_method"),
        )

    def query_authorization_code(self, code, client):
        return codes.get(code)

    def delete_authorization_code(self, authorization_code):
        for code in [code for code, each in codes.items() if each is authorization_code]:
            del codes[code]

    def authenticate_user(self, authorization_code):
        return User()


class RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        return next((t for t in tokens if t.get("refresh_token") == refresh_token and not t.is_revoked()), None)

    def authenticate_user(self, credential):
        return User()

    def revoke_old_credential(self, credential):
        credential["revoked"] = True


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = ["client_secret_basic"]

    def query_token(self, token_string, token_type_hint):
        return next((t for t in tokens if token_string in (t["access_token"], t.get("refresh_token"))), None)

    def revoke_token(self, token, request):
        token["revoked"] = True


app = Flask(__name__)
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
server = AuthorizationServer(
    app,
    query_client=lambda client_id: client if client_id == client.get_client_id() else None,
    save_token=lambda token, request: tokens.append(Token(token, issued_at=int(time.time()))),
)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_endpoint(Revocation)


@app.route("/oauth/authorize", methods=["GET", "POST"])
def authorize():
    if request.method == "GET":
        try:
            server.get_consent_grant(end_user=User())
        except OAuth2Error as error:
            return dict(error.get_body()), error.status_code
        return '<form method="post"><button name="action" value="allow">Allow</button></form>'
    return server.create_authorization_response(grant_user=User() if request.form["action"] == "allow" else None)


@app.route("/oauth/token", methods=["POST"])
def token():
    return server.create_token_response()


@app.route("/oauth/revoke", methods=["POST"])
def revoke():
    return server.create_endpoint_response("revocation")


app.run(port=int(os.environ["PORT"]))
