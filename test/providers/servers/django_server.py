"""django-oauth-toolkit with its own pages and SQLite: PKCE, HTTP Basic, rotating refresh tokens, revocation."""
import os
import sys

import django
from django.conf import settings
from jwcrypto import jwk

settings.configure(
    DEBUG=False,
    SECRET_KEY="only-for-this-test",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "oauth2_provider",
    ],
    MIDDLEWARE=[
        "django.middleware.common.CommonMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": ["django.contrib.auth.context_processors.auth"]},
        }
    ],
    LOGIN_URL="/login/",
    OAUTH2_PROVIDER={
        # Its metadata come with OpenID Connect.
        "OIDC_ENABLED": "OIDC" in os.environ,
        "OIDC_RSA_PRIVATE_KEY": jwk.JWK.generate(kty="RSA", size=2048).export_to_pem(True, None).decode(),
        "SCOPES": {"openid": "OpenID", "trade": "Trade", "account_manage": "Manage accounts"},
        "PKCE_REQUIRED": True,
        "ROTATE_REFRESH_TOKEN": True,
        # A redirect address of a test is on localhost.
        "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
    },
)
django.setup()

from django.contrib.auth import get_user_model, login  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.servers.basehttp import WSGIRequestHandler, run  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponseRedirect  # noqa: E402
from django.urls import include, path  # noqa: E402


def log_in(request):
    """Logs the only user in, without a form: its password is not what is tested."""
    login(request, get_user_model().objects.get(username="demo"))
    return HttpResponseRedirect(request.GET["next"])


urlpatterns = [
    path("login/", log_in),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]

call_command("migrate", verbosity=0)
from oauth2_provider.models import Application  # noqa: E402

user, _ = get_user_model().objects.get_or_create(username="demo")
Application.objects.get_or_create(
    client_id="test-client",
    defaults={
        "client_secret": "django-secret",
        "client_type": Application.CLIENT_CONFIDENTIAL,
        "authorization_grant_type": Application.GRANT_AUTHORIZATION_CODE,
        "redirect_uris": os.environ["REDIRECT_URI"],
        "user": user,
    },
)
WSGIRequestHandler.log_message = lambda *_: None
run("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application(), threading=True)
