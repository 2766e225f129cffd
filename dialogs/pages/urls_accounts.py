"""Addresses for signing in and out. Included at the root, before the admin's."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from dialogs.pages.views import accounts

urlpatterns = [
    path("login/", accounts.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/password/", accounts.ChangePassword.as_view(), name="password_change"),
    path("welcome/<str:uid>/<str:token>/", accounts.welcome, name="welcome"),
    path("admin/login/", accounts.admin_login),
]
